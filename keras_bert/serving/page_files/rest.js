// The page's requests to the server.

// An error of the server is thrown with its message.
async function read(response) {
  let answer;
  try {
    answer = await response.json();
  } catch {
    throw new Error(`The server responded with ${response.status} ${response.statusText}.`);
  }
  if (!response.ok) throw new Error(answer.error ?? `The server responded with ${response.status}.`);
  return answer;
}

async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Error("The server cannot be reached.");
  }
}

export async function get(path) {
  return read(await reach(path));
}

export async function post(path, value) {
  const headers = { "Content-Type": "application/json" };
  return read(await reach(path, { method: "POST", headers, body: JSON.stringify(value) }));
}

// The inputs and outputs of each signature of a model.
export async function readMetadata(name) {
  const { metadata } = await get(`/v1/models/${encodeURIComponent(name)}/metadata`);
  return Object.entries(metadata.signature_def.signature_def).map(([signature, tensors]) => {
    const inputs = Object.keys(tensors.inputs);
    const outputs = Object.keys(tensors.outputs);
    return {
      name,
      signature,
      takes: (...names) => names.length === inputs.length && names.every((n) => inputs.includes(n)),
      takesAlso: (n) => inputs.includes(n),
      gives: (...names) => names.every((n) => outputs.includes(n)),
    };
  });
}

// The prediction for one example: {output: value}.
export async function ask(model, example) {
  const path = `/v1/models/${encodeURIComponent(model.name)}:predict`;
  const request = { instances: [example], signature_name: model.signature };
  const { predictions } = await post(path, request);
  return predictions[0];
}
