"""`socialpub demo`: the appliance and the sandbox at work, each step shown with the command that does the same."""
