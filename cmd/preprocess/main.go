// Preprocess turns raw samples into a dataset: see package internal/preprocess, or
// preprocess --help.
package main

import (
	"github.com/penstock/penstock/internal/cli"
	"github.com/penstock/penstock/internal/preprocess"
)

func main() { cli.Main(preprocess.Command()) }
