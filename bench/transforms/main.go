// Command transforms measures the way of a photo from its file's bytes to a record, against
// programs that do the same: the usual Go one, libjpeg-turbo alone, and with -python Pillow,
// OpenCV and torchvision.
//
//	transforms [-data photos.tar] [-python PYTHON] [-rounds 7] [-only PARTS]
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/internal/imagefile"
)

// options are the command line's.
type options struct {
	data, python, peers, only string
	rounds, every             int
	serve                     string
}

func main() {
	var o options
	flag.StringVar(&o.data, "data", os.Getenv("PHOTOS"), "tar archive of photos, or folder; default: PHOTOS, else "+
		"../shared/data/photos.tar or testdata/raw, whichever exists")
	flag.StringVar(&o.python, "python", "", "Python with Pillow, OpenCV and torchvision, to be measured too")
	flag.StringVar(&o.peers, "peers", "", "folder of images.py; default: bench/peers")
	flag.StringVar(&o.only, "only", "", "parts to do, with commas between: pipeline, progressive, resize, peers; "+
		"default: all")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds of every part")
	flag.IntVar(&o.every, "every", 4, "enlarge one photo in this many")
	flag.StringVar(&o.serve, "serve", "", "answer requests on the photos in this folder (for internal use)")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "transforms:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	runtime.GOMAXPROCS(1)
	if o.serve != "" {
		return serve(o.serve)
	}
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Printf("%s\n%s\n\n", measure.Machine(), b.describe())
	for _, part := range b.parts() {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), part.name) {
			continue
		}
		if err := part.do(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	fmt.Println(measure.Machine())
	return nil
}

type part struct {
	name string
	do   func() error
}

// parts are the measurements that the installed programs allow.
func (b *bench) parts() []part {
	list := []part{{"pipeline", b.pipeline}, {"progressive", b.severalScans}, {"resize", b.resize}}
	if b.python != nil {
		list = append(list, part{"peers", b.peers})
	}
	return list
}

// describe says what is compared.
func (b *bench) describe() string {
	var s strings.Builder
	fmt.Fprintf(&s, "JPEG decoder: %s", imagefile.Backend())
	if b.python != nil {
		fmt.Fprintf(&s, "\npeers: %s", b.pythonText)
	}
	for _, set := range slices.Concat(b.sets, b.scans) {
		fmt.Fprintf(&s, "\n%s", set)
	}
	fmt.Fprintf(&s, "\n%d rounds; ratios are median [lowest..highest] of the rounds' CPU times, one thread, "+
		"files in memory", b.o.rounds)
	return s.String()
}
