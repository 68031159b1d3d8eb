// Block hdf5.md:24.
package main

import (
	"context"
	"github.com/penstock/penstock/mmapds"
)

func step(...any) {}

func main() { _ = run(context.Background()) }

func run(ctx context.Context) error {
	ds, err := mmapds.Open("old.h5")
	if err != nil {
		return err
	}
	defer ds.Close()

	return nil
}
