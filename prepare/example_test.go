package prepare_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/tensor"
)

// A table becomes a dataset of two fields, which are split by content.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	table := filepath.Join(dir, "points.csv")
	if err := os.WriteFile(table, []byte("x,label\n0.5,a\n1.5,b\n2.5,a\n"), 0o666); err != nil {
		log.Fatal(err)
	}
	c := prepare.DefaultConfig()
	c.Source, c.Dest = table, filepath.Join(dir, "points")
	plan, err := prepare.NewPlan(context.Background(), c, nil)
	if err != nil {
		log.Fatal(err) // all that is wrong with c, or with its source
	}
	defer plan.Close()
	s, err := plan.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Records, "records")
	for _, f := range s.Fields {
		fmt.Println(f.Name, f.DType == tensor.Int64.String(), len(f.Classes))
	}
	// Output:
	// 3 records
	// x false 0
	// label true 2
}
