package cuda

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

//go:generate go run ./_ptx

// normalizePTX is the kernels as text, which the driver compiles for its device: any from
// Maxwell (2014, sm_50) on.
//
//go:embed normalize.ptx
var normalizePTX []byte

// Normalize makes the device convert a uint8 field to floats, so that a quarter of the bytes cross
// the bus:
//
//	y = (x/255 - Mean[c]) / Std[c]
//
// Each step is rounded to float32 by IEEE 754, and float16 and bfloat16 are rounded from there to
// nearest even: the results are bit-identical to transforms.Normalize on the CPU.
type Normalize struct {
	DType   tensor.DType      // of the result: Float32, which Invalid means too, Float16 or BFloat16
	NoScale bool              // leave out the division by 255
	Mean    []float64         // one per channel (at most 4), or one for all; none means 0
	Std     []float64         // as many; none means 1
	Layout  transforms.Layout // of the field's records, where they have three axes; others have one channel
	ToCHW   bool              // records in layout HWC become CHW
}

const maxChannels = 4

// validate returns an error for settings that no field can have.
func (n Normalize) validate() error {
	var errs []error
	switch n.DType {
	case tensor.Invalid, tensor.Float32, tensor.Float16, tensor.BFloat16:
	default:
		errs = append(errs, fmt.Errorf("DType is %v; it must be float32, float16 or bfloat16", n.DType))
	}
	if len(n.Mean) != len(n.Std) || len(n.Mean) > maxChannels {
		errs = append(errs, fmt.Errorf("%d means and %d deviations; as many of both, and at most %d", len(n.Mean), len(n.Std),
			maxChannels))
	}
	for _, m := range n.Mean {
		if math.IsNaN(m) || math.IsInf(m, 0) {
			errs = append(errs, fmt.Errorf("mean %v", m))
		}
	}
	for _, s := range n.Std {
		if float32(s) == 0 || math.IsNaN(s) || math.IsInf(float64(float32(s)), 0) {
			errs = append(errs, fmt.Errorf("deviation %v", s))
		}
	}
	return errors.Join(errs...)
}

// permutes reports whether the result has another layout than the field.
func (n Normalize) permutes() bool { return n.ToCHW && n.Layout == transforms.HWC }

// normArgs are the parameters of a kernel in their order.
type normArgs struct {
	dst, src                        uint64
	total                           uint32 // elements of the batch
	channels, plane, pixel, channel uint32 // see normalize.ptx
	scale                           float32
	mean, std                       [maxChannels]float32
}

// pointers returns the address of each parameter, which is what cuLaunchKernel takes.
func (a *normArgs) pointers() *[16]unsafe.Pointer {
	p := &[16]unsafe.Pointer{
		unsafe.Pointer(&a.dst), unsafe.Pointer(&a.src), unsafe.Pointer(&a.total),
		unsafe.Pointer(&a.channels), unsafe.Pointer(&a.plane), unsafe.Pointer(&a.pixel), unsafe.Pointer(&a.channel),
		unsafe.Pointer(&a.scale),
	}
	for c := range maxChannels {
		p[8+c], p[12+c] = unsafe.Pointer(&a.mean[c]), unsafe.Pointer(&a.std[c])
	}
	return p
}

// normalizer is a Normalize that is compiled for one field.
type normalizer struct {
	kernel string
	args   normArgs // but for what differs between batches
}

// of returns the spec of the normalized field, and its normalizer.
func (n Normalize) of(in tensor.Spec) (tensor.Spec, *normalizer, error) {
	out := tensor.Spec{Name: in.Name, DType: n.DType, Shape: in.Shape}
	if out.DType == tensor.Invalid {
		out.DType = tensor.Float32
	}
	if in.DType != tensor.Uint8 {
		return out, nil, fmt.Errorf("field %q is %v; only uint8 can be normalized on the device", in.Name, in.DType)
	}
	channels, plane := 1, in.Shape.Elems()
	if s := in.Shape; len(s) == 3 {
		channels, plane = s[0], s[1]*s[2]
		if n.Layout == transforms.HWC {
			channels, plane = s[2], s[0]*s[1]
		}
		if n.permutes() {
			out.Shape = tensor.Shape{s[2], s[0], s[1]}
		}
	}
	if len(n.Mean) > 1 && len(n.Mean) != channels {
		return out, nil, fmt.Errorf("field %q has %d channels in layout %v, but there are %d means", in.Name, channels,
			n.Layout, len(n.Mean))
	}
	return out, n.compile(out.DType, channels, plane), nil
}

// compile sets the parameters of the kernel.
func (n Normalize) compile(dt tensor.DType, channels, plane int) *normalizer {
	k := &normalizer{kernel: "penstock_normalize_" + map[tensor.DType]string{
		tensor.Float32: "f32", tensor.Float16: "f16", tensor.BFloat16: "bf16",
	}[dt]}
	a := &k.args
	a.channels, a.plane, a.pixel, a.channel = uint32(channels), uint32(plane), 1, uint32(plane)
	switch {
	case n.permutes():
		a.pixel, a.channel = uint32(channels), 1
	case n.Layout == transforms.HWC: // every element is a plane of its own
		a.plane, a.channel = 1, 1
	}
	a.scale = 255
	if n.NoScale {
		a.scale = 1
	}
	for c := range maxChannels {
		a.std[c] = 1
		if len(n.Mean) > 0 {
			i := c % len(n.Mean)
			a.mean[c], a.std[c] = float32(n.Mean[i]), float32(n.Std[i])
		}
	}
	return k
}

// threads per block, and the most blocks of a launch: beyond that, each thread makes
// several elements.
const (
	blockThreads = 256
	maxBlocks    = 1 << 14
)

// normalize queues on the stream the conversion of the bytes at src to total elements at dst.
func (d *Device) normalize(k *normalizer, dst, src uint64, total int, stream uintptr) error {
	if total > math.MaxInt32 {
		return fmt.Errorf("cuda: %d elements in a batch; the kernel can normalize %d: lower BatchSize", total, math.MaxInt32)
	}
	f, err := d.kernel(k.kernel)
	if err != nil {
		return err
	}
	a := new(normArgs)
	*a = k.args
	a.dst, a.src, a.total = dst, src, uint32(total)
	params := a.pointers()
	blocks := uint32(min((total+blockThreads-1)/blockThreads, maxBlocks))
	return d.do("cuLaunchKernel of the normalization", func() Result {
		return d.drv.LaunchKernel(f, blocks, 1, 1, blockThreads, 1, 1, 0, stream, &params[0], 0)
	})
}

// kernel returns a function of the module. The module is loaded at first use, since the driver then
// compiles it for its device.
func (d *Device) kernel(name string) (f uintptr, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.kernels[name]; f != 0 {
		return f, nil
	}
	if d.module == 0 {
		image := append(normalizePTX[:len(normalizePTX):len(normalizePTX)], 0)
		err := d.do("cuModuleLoadData of the normalization kernels", func() Result {
			return d.drv.ModuleLoadData(&d.module, &image[0])
		})
		if err != nil {
			return 0, fmt.Errorf("%w; transforms.Normalize does it on the CPU", err)
		}
	}
	err = d.do("cuModuleGetFunction "+name, func() Result { return d.drv.ModuleGetFunction(&f, d.module, name) })
	if err == nil {
		d.kernels[name] = f
	}
	return f, err
}

// unloadKernelsLocked unloads the module, if it was loaded.
func (d *Device) unloadKernelsLocked() error {
	if d.module == 0 {
		return nil
	}
	return d.free("cuModuleUnload", func() Result { return d.drv.ModuleUnload(d.module) })
}
