"""The interpreter that defines what PTX means, plainly and slowly: `interpreter` runs blocks, each other module knows one family."""
