"""The figures that a comparison between networks has."""

KINDS = {
    "barrier": "loss barrier",
    "cka": "CKA",
    "grad_cam": "Grad-CAM stability",
    "grad_cam_high": "Grad-CAM stability, high entropy",
}
