package imagefile

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"image"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// pillowScript writes Pillow's major version. Then it reads paths, one a line, and writes for
// each: width, height, channels and the pixels, or a width of 0 where Pillow refuses the file.
// Its second argument names what is done to the image: nothing, ImageOps.exif_transpose,
// img2dataset's formula for what is transparent on white or black, torchvision's Resize(256)
// and CenterCrop(224) with a filter, or the crop, resize and flip that a line has after the name.
const pillowScript = `
import struct, sys, warnings
from PIL import Image, ImageOps, __version__
warnings.simplefilter("ignore")
mode, do = sys.argv[1:]
sys.stdout.buffer.write(struct.pack("<I", int(__version__.split(".")[0])))
sys.stdout.buffer.flush()

def cropped(im, method):
    w, h = im.size
    size = (256, int(256 * h / w)) if w <= h else (int(256 * w / h), 256)
    im = im.resize(size, method)
    x, y = (int(round((d - 224) / 2.0)) for d in size)
    return im.crop((x, y, x + 224, y + 224))

def over(im, back):
    out = bytearray()
    for *color, a in im.convert("RGBA").getdata():
        out += bytes(round(a / 255 * c + (255 - a) / 255 * back) for c in color)
    return Image.frombytes("RGB", im.size, bytes(out))

functional = None
if do == "crops":
    try:
        from torchvision.transforms import functional
    except ImportError:
        pass

def crop(im, left, top, width, height, size, flip):
    if functional: # torchvision's own code, if it is installed
        im = functional.resized_crop(im, top, left, height, width, [size, size])
        return functional.hflip(im) if flip else im
    im = im.crop((left, top, left + width, top + height)).resize((size, size), Image.BILINEAR)
    return im.transpose(Image.FLIP_LEFT_RIGHT) if flip else im

for line in sys.stdin:
    try:
        line, *box = line.rstrip("\n").split("\t")
        im = Image.open(line.rstrip("\n"))
        if do == "turn" and im.format != "TIFF": # that is turned when it is loaded
            im = ImageOps.exif_transpose(im)
        if do in ("white", "black"):
            im = over(im, 255 if do == "white" else 0)
        im = im.convert(mode)
        if box:
            im = crop(im, *map(int, box))
        if do.isupper():
            im = cropped(im, getattr(Image, do))
        sys.stdout.buffer.write(struct.pack("<III", im.width, im.height, len(mode)) + im.tobytes())
    except Exception:
        sys.stdout.buffer.write(struct.pack("<III", 0, 0, 0))
    sys.stdout.buffer.flush()
`

// pixels is a whole image, without gaps.
type pixels struct {
	w, h, c int
	pix     []byte
}

// pillow asks the installed Pillow for one image after the other. The test is skipped where
// there is none.
type pillow struct {
	t     testing.TB
	in    io.Writer
	out   *bufio.Reader
	major uint32 // version
}

// pillowPython returns the command of a Python that has Pillow, or skips the test.
func pillowPython(t testing.TB) string {
	t.Helper()
	return pythontest.Need(t, "import PIL, numpy")
}

func newPillow(t testing.TB, mode, do string) *pillow {
	t.Helper()
	python := pillowPython(t)
	cmd := exec.Command(python, "-c", pillowScript, mode, do)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error("python3:", err)
		}
	})
	p := &pillow{t: t, in: in, out: bufio.NewReader(out)}
	if err := binary.Read(p.out, binary.LittleEndian, &p.major); err != nil {
		t.Fatal("python3:", err)
	}
	return p
}

// passOrder returns how it resizes tall images.
func (p *pillow) passOrder() string {
	if p.major >= 13 {
		return "auto"
	}
	return "horizontal"
}

// open returns the image, and whether Pillow reads it.
func (p *pillow) open(path string) (pixels, bool) {
	p.t.Helper()
	path, err := filepath.Abs(path)
	require.NoError(p.t, err)
	return p.ask(path)
}

// ask returns the image that a line asks for, and whether there is one.
func (p *pillow) ask(line string) (pixels, bool) {
	p.t.Helper()
	fmt.Fprintln(p.in, line)
	var head [3]uint32
	if err := binary.Read(p.out, binary.LittleEndian, &head); err != nil {
		p.t.Fatal("python3:", err)
	}
	m := pixels{w: int(head[0]), h: int(head[1]), c: int(head[2])}
	m.pix = make([]byte, m.w*m.h*m.c)
	if _, err := io.ReadFull(p.out, m.pix); err != nil {
		p.t.Fatal("python3:", err)
	}
	return m, m.w > 0
}

// compare fails the test if got is not the image that Pillow decodes.
func (p *pillow) compare(path string, got pixels) {
	p.t.Helper()
	want, ok := p.open(path)
	if !ok {
		p.t.Fatalf("%s: Pillow cannot read it", path)
	}
	if largest, mean := difference(p.t, got, want); largest > 0 {
		p.t.Errorf("%s: differs from Pillow by up to %d, %.4f in the mean", filepath.Base(path), largest, mean)
	}
}

// againstPillow decodes files to RGB and to gray, as Pillow does, in a subtest each.
func againstPillow(t *testing.T, paths []string) {
	for mode, color := range map[string]Color{"RGB": RGB, "L": Gray} {
		t.Run(mode, func(t *testing.T) {
			p, d := newPillow(t, mode, "nothing"), New(Options{Color: color})
			for _, path := range paths {
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				got, err := openAll(t, d, data)
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				p.compare(path, got)
			}
			t.Logf("%s: compared %d files", Backend(), len(paths))
		})
	}
}

// gather scans r of src and checks on the way that the strips keep the Source's contract.
func gather(t testing.TB, src pixel.Source, r image.Rectangle) (pixels, error) {
	t.Helper()
	_, _, c := src.Size()
	m := pixels{w: r.Dx(), h: r.Dy(), c: c}
	next := r.Min.Y
	err := src.Scan(r, func(y int, s pixel.Image) error {
		if y != next || s.W != m.w || s.C != c {
			t.Fatalf("strip of %dx%dx%d at row %d; want width %d, %d channels, row %d", s.W, s.H, s.C, y, m.w, c, next)
		}
		next += s.H
		for i := range s.H {
			for x := range s.W {
				m.pix = append(m.pix, s.Pix[i*s.Stride+x*s.Step:][:c]...)
			}
		}
		return nil
	})
	if err == nil && next != r.Max.Y {
		t.Fatalf("strips ended at row %d of %v", next, r)
	}
	return m, err
}

func openAll(t testing.TB, d *Decoder, data []byte) (pixels, error) {
	t.Helper()
	src, err := d.Open(data)
	if err != nil {
		return pixels{}, err
	}
	w, h, _ := src.Size()
	return gather(t, src, image.Rect(0, 0, w, h))
}

// difference returns the largest and the mean absolute difference.
func difference(t testing.TB, got, want pixels) (largest int, mean float64) {
	t.Helper()
	if got.w != want.w || got.h != want.h || got.c != want.c || len(got.pix) != len(want.pix) {
		t.Fatalf("got %dx%dx%d (%d bytes), want %dx%dx%d (%d bytes)",
			got.w, got.h, got.c, len(got.pix), want.w, want.h, want.c, len(want.pix))
	}
	sum := 0
	for i := range got.pix {
		d := int(got.pix[i]) - int(want.pix[i])
		d = max(d, -d)
		largest = max(largest, d)
		sum += d
	}
	return largest, float64(sum) / float64(max(1, len(got.pix)))
}
