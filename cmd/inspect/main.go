// Inspect shows what a dataset holds: see package internal/inspect, or inspect --help.
package main

import (
	"github.com/penstock/penstock/internal/cli"
	"github.com/penstock/penstock/internal/inspect"
)

func main() { cli.Main(inspect.Command()) }
