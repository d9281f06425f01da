"""Several devices, hosts and TPUs."""
