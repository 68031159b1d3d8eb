// Block views.md:215.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/filter"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/mmapds"
)

func main() {
	ds, err := views.Open(context.Background(), "few.view.json", views.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()

	pictures, err := mmapds.Open("pictures")
	if err != nil {
		log.Fatal(err)
	}
	defer pictures.Close()
	half, err := combine.NewSelect(pictures, combine.Select{Ranges: [][2]int{{0, 500}}})
	if err != nil {
		log.Fatal(err)
	}
	bright, err := filter.Find(context.Background(), pictures, "mean(image) > 128")
	if err != nil {
		log.Fatal(err)
	}
	view, err := combine.NewSelect(pictures, combine.Select{Set: bright})
	if err != nil {
		log.Fatal(err)
	}
	notes, err := mmapds.Open("notes")
	if err != nil {
		log.Fatal(err)
	}
	defer notes.Close()
	noted, matches, err := combine.NewJoin(context.Background(), pictures, notes, combine.Join{On: "label", Many: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(matches.Left), "records without a note")
	for _, src := range []loader.Source{ds.Source, half, view, noted} {
		fmt.Println(src.Len())
	}
}
