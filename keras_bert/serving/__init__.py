"""A development server with TensorFlow Serving's REST, and a client of its REST and gRPC."""
