// Preprocess turns raw samples into a dataset: see package cmd/internal/preprocess, or
// preprocess --help.
package main

import (
	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/preprocess"
)

func main() { cli.Main(preprocess.Command()) }
