"""`socialpub demo`: the appliance and the stand-in networks, played through in front of the operator."""
