"""A development server and a client, with the REST and gRPC of TensorFlow Serving."""
