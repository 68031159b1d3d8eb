package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/cuda"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// An epoch on the first device, or on the host where there is none.
func Example() {
	n, err := onDevice(squares{})
	if errors.Is(err, cuda.ErrNoCUDA) {
		log.Print("training on the host: ", err)
		n, err = onHost(squares{})
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "records")
	// Output: 10 records
}

func onDevice(src loader.Source) (records int, err error) {
	dev, err := cuda.Open(0)
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	ld, err := loader.New(src, loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}, Allocator: dev.Allocator()})
	if err != nil {
		return 0, err
	}
	defer ld.Close()
	pf, err := cuda.New(ld, cuda.Options{Devices: []*cuda.Device{dev}, Fields: []string{"x"}})
	if err != nil {
		return 0, err
	}
	defer pf.Close()
	for b, err := range pf.Epoch(context.Background(), 0) {
		if err != nil {
			return records, err
		}
		records += b.Len()
		stream := b.Stream() // work here needs no Wait; a framework has its own stream
		_ = b.Field("x").Ptr // the work would read from here
		if err := b.Done(stream); err != nil {
			return records, err
		}
	}
	return records, nil
}

func onHost(src loader.Source) (records int, err error) {
	ld, err := loader.New(src, loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}})
	if err != nil {
		return 0, err
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			return records, err
		}
		records += b.Len()
	}
	return records, nil
}

// squares is a dataset of ten numbers; *mmapds.Dataset is one of files.
type squares struct{}

var spec = tensor.Spec{Name: "x", DType: tensor.Uint8}

func (squares) Len() int                        { return 10 }
func (squares) Specs() []tensor.Spec            { return []tensor.Spec{spec} }
func (squares) Prefetch(string, int, int) error { return nil }
func (squares) Retain() error                   { return nil }
func (squares) Release()                        {}
func (squares) Slice(_ string, a, b int) (tensor.View, error) {
	x := make([]byte, 0, b-a)
	for i := a; i < b; i++ {
		x = append(x, byte(i*i))
	}
	return tensor.Of(spec, b-a, x), nil
}

func (squares) Gather(ctx context.Context, _ string, indices []int, dst []byte) error {
	for i, x := range indices {
		dst[i] = byte(x * x)
	}
	return ctx.Err()
}
