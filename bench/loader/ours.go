package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// touch reads a byte of every cache line, as training would.
func touch(bytes []byte) (sum byte) {
	for i := 0; i < len(bytes); i += 64 {
		sum += bytes[i]
	}
	return sum
}

// epochs returns a contender that iterates some epochs a round, and measures the time of an
// epoch.
func epochs(name string, d *dataset, o loader.Options, touching bool) (measure.Contender, *loader.Loader, error) {
	o.BatchSize = d.batch
	ld, err := loader.New(d.ds, o)
	if err != nil {
		return measure.Contender{}, nil, err
	}
	epoch := 0
	one := func() error {
		epoch++
		for batch, err := range ld.Epoch(context.Background(), epoch) {
			if err != nil {
				return err
			}
			if touching {
				runtime.KeepAlive(touch(batch.Field("x").Bytes()))
			}
		}
		return nil
	}
	return measure.Contender{Name: name, Do: measure.Repeated(d.times, one)}, ld, nil
}

// variant is a Loader to be measured.
type variant struct {
	name string
	o    loader.Options
}

// contenders opens a Loader for each variant. done closes them.
func contenders(d *dataset, touching bool, list []variant) (out []measure.Contender, loaders []*loader.Loader,
	err error) {
	for _, v := range list {
		c, ld, err := epochs(v.name, d, v.o, touching)
		if err != nil {
			return nil, loaders, err
		}
		out, loaders = append(out, c), append(loaders, ld)
	}
	return out, loaders, nil
}

func closeAll(loaders []*loader.Loader) {
	for _, ld := range loaders {
		_ = ld.Close() // nothing was kept
	}
}

// normalized is the Transform that makes normalized float32 of stored images and flips every
// second one.
func normalized() (map[string]loader.Transform, error) {
	p, err := transforms.Compose(
		transforms.RandomHorizontalFlip{},
		transforms.ToLayout{Layout: transforms.CHW},
		transforms.ConvertDType{DType: tensor.Float32},
		transforms.ImageNet,
	)
	return map[string]loader.Transform{"x": loader.Images{Pipeline: p, Layout: transforms.CHW}}, err
}

// copied reports the bytes that a Loader wrote to buffers, for a batch.
func copied(ld *loader.Loader) string {
	st := ld.Stats()
	return fmt.Sprint(st.CopiedBytes / int64(max(1, st.Batches)))
}
