"""What is measured on a trained network: Hessian, OOD scores, and what checks of scores cost."""
