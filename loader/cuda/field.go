package cuda

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// field describes one field of the batches on a device.
type field struct {
	in, out tensor.Spec
	norm    *normalizer // nil copies
	direct  *mapping    // nil if it is the Loader's
}

// setPlan determines the fields of batches from the first batch: only a batch shows the types that
// Transforms and Collate make. The goroutine of a loop calls it, and no other goroutine reads the
// plan before a batch reaches the consumer.
func (p *Prefetcher) setPlan(b loader.Batch) error {
	if p.plan != nil {
		return nil
	}
	var plan []*field
	for _, name := range p.opts.Fields {
		v, err := hostField(b, name)
		if err != nil {
			return err
		}
		plan = append(plan, &field{in: tensor.Spec{Name: name, DType: v.DType(), Shape: v.Shape()[1:]}})
	}
	for _, m := range p.maps {
		plan = append(plan, &field{in: m.spec, direct: m})
	}
	for _, f := range plan {
		f.out = f.in
		if n, ok := p.opts.Normalize[f.in.Name]; ok {
			var err error
			if f.out, f.norm, err = n.of(f.in); err != nil {
				return fmt.Errorf("cuda: Normalize: %w", err)
			}
		}
	}
	p.plan = plan
	return nil
}

// offsets is the suffix of a field name that stands for the offsets of a field of variable length.
const offsets = ".offsets"

// hostField returns a field of a batch of the Loader. The Loader panics for an unknown field, which
// is an error of the options here.
func hostField(b loader.Batch, name string) (v tensor.View, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cuda: options: Fields: %v", p)
		}
	}()
	if of, ok := strings.CutSuffix(name, offsets); ok {
		at := b.Offsets(of)
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(at))), 8*len(at))
		return tensor.Of(tensor.Spec{Name: name, DType: tensor.Int64}, len(at), bytes), nil
	}
	return b.Field(name), nil
}
