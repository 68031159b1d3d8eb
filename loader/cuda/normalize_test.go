//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// norms are the normalizations that are tested.
var norms = []Normalize{
	{},
	{NoScale: true},
	{Mean: []float64{0.485, 0.456, 0.406}, Std: []float64{0.229, 0.224, 0.225}},
	{Mean: []float64{0.5}, Std: []float64{-1e-3}},
	{Mean: []float64{121.1, 117.2, 0}, Std: []float64{58.1, 57.9, 1e38}, NoScale: true},
	{Mean: []float64{0, 1, 1e30}, Std: []float64{1e-30, 1e-45, 3}}, // infinities and subnormal numbers
}

// eachNorm calls f with all of them in every type and layout.
func eachNorm(f func(name string, n Normalize)) {
	layouts := map[string]Normalize{"chw": {Layout: transforms.CHW}, "hwc": {Layout: transforms.HWC}, "hwc to chw": {ToCHW: true}}
	for i, n := range norms {
		for _, n.DType = range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
			for layout, l := range layouts {
				n.Layout, n.ToCHW = l.Layout, l.ToCHW
				f(fmt.Sprintf("%d/%v/%s", i, n.DType, layout), n)
			}
		}
	}
}

// reference normalizes one record on the CPU, by the kernels that transforms uses.
func reference(n Normalize, shape tensor.Shape, src []byte) []byte {
	var tables kernel.Norm
	var mean, std []float32
	for i := range n.Mean {
		mean, std = append(mean, float32(n.Mean[i])), append(std, float32(n.Std[i]))
	}
	tables.Init(n.DType, !n.NoScale, mean, std)
	channels, plane := shape[0], shape[1]*shape[2]
	if n.Layout == transforms.HWC {
		channels, plane = shape[2], shape[0]*shape[1]
	}
	out := make([]byte, len(src)*n.DType.Size())
	for c := range channels {
		for p := range plane {
			from, to := c*plane+p, c*plane+p
			if n.Layout == transforms.HWC {
				from = p*channels + c
			}
			if n.Layout == transforms.HWC && !n.ToCHW {
				to = p*channels + c
			}
			y := tables.At(c, src[from])
			switch n.DType {
			case tensor.Float32:
				binary.LittleEndian.PutUint32(out[4*to:], math.Float32bits(y))
			case tensor.Float16:
				binary.LittleEndian.PutUint16(out[2*to:], uint16(tensor.HalfOf(y)))
			default:
				binary.LittleEndian.PutUint16(out[2*to:], uint16(tensor.BrainOf(y)))
			}
		}
	}
	return out
}

// A record that is normalized on the device has the bits of one that the host normalizes.
func TestNormalize(t *testing.T) {
	for mode, lazy := range modes {
		eachNorm(func(name string, n Normalize) {
			t.Run(mode+"/"+name, func(t *testing.T) {
				useFake(t, setting{lazy: lazy})
				testNormalize(t, n)
				if got := stats().launches; got != 4 {
					t.Errorf("%d launches for 4 batches", got)
				}
			})
		})
	}
}

func testNormalize(t *testing.T, n Normalize) {
	shape := tensor.Shape{3, 16, 11}
	want := shape
	if n.Layout == transforms.HWC {
		shape, want = tensor.Shape{16, 11, 3}, tensor.Shape{16, 11, 3}
		if n.ToCHW {
			want = tensor.Shape{3, 16, 11}
		}
	}
	src := newSource(13, shape)
	c := config{src: src, loader: loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}}}
	c.opts = Options{Fields: both, Normalize: map[string]Normalize{"images": n}}
	r := c.mustOpen(t)
	defer r.mustClose(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		x := b.Field("images")
		if x.DType != n.DType || fmt.Sprint(x.Shape) != fmt.Sprint(append(tensor.Shape{b.Len()}, want...)) || x.Ptr%256 != 0 {
			t.Errorf("the field is %+v", x)
		}
		require.NoError(t, r.consume(b, both...))
	}
	require.NoError(t, r.devices[0].SynchronizeStream(r.streams[0]))
	record := src.shape.Elems()
	for _, s := range r.seen {
		for i, x := range s.indices {
			size := record * n.DType.Size()
			if got := s.fields["images"][i*size : (i+1)*size]; !bytes.Equal(got, reference(n, shape, src.images[x*record:(x+1)*record])) {
				t.Fatalf("record %d has other bits", x)
			}
		}
		require.NoError(t, compare(src, "labels", s.indices, s.fields["labels"]))
	}
	if got := r.pf.Stats().Normalized; got != int64(13*record) {
		t.Errorf("%d elements normalized", got)
	}
}

func TestNormalizeRefused(t *testing.T) {
	image := tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{3, 4, 4}}
	for _, c := range []struct {
		n    Normalize
		want string
	}{
		{Normalize{DType: tensor.Int8}, "DType is int8"},
		{Normalize{Mean: []float64{1}}, "1 means and 0 deviations"},
		{Normalize{Mean: make([]float64, 5), Std: make([]float64, 5)}, "5 means"},
		{Normalize{Mean: []float64{math.NaN()}, Std: []float64{1}}, "mean NaN"},
		{Normalize{Mean: []float64{0}, Std: []float64{0}}, "deviation 0"},
		{Normalize{Mean: []float64{0}, Std: []float64{1e-50}}, "deviation 1e-50"},
		{Normalize{Mean: []float64{0}, Std: []float64{1e39}}, "deviation 1e+39"},
		{Normalize{Mean: []float64{1, 2, 3}, Std: []float64{1, 2, 3}}, "4 channels in layout hwc, but there are 3 means"},
	} {
		err := c.n.validate()
		if err == nil {
			_, _, err = c.n.of(image)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.n, err, c.want)
		}
	}
	image.DType = tensor.Float32
	if _, _, err := (Normalize{}).of(image); err == nil || !strings.Contains(err.Error(), "only uint8") {
		t.Errorf("float32: %v", err)
	}
}

// The kernels as text, run instruction by instruction, give the same bits as the CPU.
func TestPTX(t *testing.T) {
	eachNorm(func(name string, n Normalize) {
		shape := tensor.Shape{3, 16, 11}
		if n.Layout == transforms.HWC {
			shape = tensor.Shape{16, 11, 3}
		}
		src := newSource(3, shape)
		_, k, err := n.of(tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: shape})
		require.NoError(t, err)
		got, err := interpret(k, src.images, n.DType.Size(), 7, 32)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var want []byte
		for r := range 3 {
			want = append(want, reference(n, shape, src.images[r*shape.Elems():(r+1)*shape.Elems()])...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: other bits", name)
		}
	})
}

// The committed kernels equal the output of the generator.
func TestPTXIsGenerated(t *testing.T) {
	out, err := exec.Command("go", "run", "./_ptx", "-out", "-").Output()
	require.NoError(t, err)
	if !bytes.Equal(out, normalizePTX) {
		t.Error("normalize.ptx is not what the generator writes; run go generate")
	}
}

// NVIDIA's assembler takes the kernels, for every device that it knows from the oldest on that
// they are for.
func TestPTXAssembles(t *testing.T) {
	ptxas, err := exec.LookPath("ptxas")
	if err != nil {
		for _, place := range inPythons("nvidia/*/bin/ptxas", "triton/backends/nvidia/bin/ptxas") {
			ptxas = place
		}
	}
	if ptxas == "" {
		t.Skip("needs ptxas, of the CUDA toolkit or of the package nvidia-cuda-nvcc-cu12 of the Python that PYTHON names: ", err)
	}
	for _, arch := range []string{"sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"} {
		out, err := exec.Command(ptxas, "-arch="+arch, "-o", filepath.Join(t.TempDir(), "out"), "normalize.ptx").CombinedOutput()
		switch {
		case err == nil:
		case strings.Contains(string(out), "is not defined for option"):
			t.Logf("%s does not know %s", ptxas, arch)
		default:
			t.Errorf("%s: %v\n%s", arch, err, out)
		}
	}
}
