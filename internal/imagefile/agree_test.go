//go:build turbo && cgo

package imagefile

import (
	"bytes"
	"image"
	"math/rand/v2"
	"strings"
	"testing"
)

// Where both back ends accept a file, damaged or not, they agree on its pixels, and what
// libjpeg-turbo refuses, the other does too. It is the stricter one: libjpeg-turbo does not
// mind a run that leads out of a block.
func TestBackendsAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	n := 200
	if testing.Short() {
		n = 20
	}
	lib, own := New(Options{Library: true}), New(Options{Library: true})
	defer lib.Close()
	both, neither, one := 0, 0, 0
	kinds(t, func(name string, data []byte) {
		if !strings.HasSuffix(name, ".jpg") {
			return
		}
		for i := range n {
			if i > 0 {
				data = mutatedScan(t, rng, readKind(t, name))
			}
			a, errA := openAll(t, lib, data)
			b, errB := openGoAll(t, own, data)
			switch {
			case errA == nil && errB == nil:
				both++
				if !bytes.Equal(a.pix, b.pix) && !absurd(t, &own.jpeg.jpegDecoder) {
					t.Errorf("%s, variant %d: pixels differ", name, i)
				}
			case errA != nil && errB != nil:
				neither++
			default:
				one++
				if errB == nil {
					t.Errorf("%s, variant %d: accepted, libjpeg-turbo refuses it: %v", name, i, errA)
				}
			}
		}
	})
	t.Logf("accepted by both %d, by none %d, by one %d", both, neither, one)
	if both == 0 || neither == 0 {
		t.Errorf("accepted by both %d, by none %d: nothing was compared", both, neither)
	}
}

func openGoAll(t *testing.T, d *Decoder, data []byte) (pixels, error) {
	h, err := parseJPEG(data)
	if err == nil {
		err = h.checkEnd(data)
	}
	if err == nil {
		err = h.checkSize(len(data) - h.scan)
	}
	if err != nil {
		return pixels{}, err
	}
	src, err := d.openGo(&h, data)
	if err != nil {
		return pixels{}, err
	}
	return gather(t, src, image.Rect(0, 0, h.w, h.h))
}

// absurd reports whether a coefficient is larger than any encoder makes it, eight times the
// largest there is. libjpeg-turbo's code for such overflows in other ways.
func absurd(t *testing.T, j *jpegDecoder) bool {
	if err := j.rewind(); err != nil {
		t.Fatal(err)
	}
	for ; j.decoded < j.unitsY; j.decoded++ {
		if !j.buffered {
			if err := j.readUnitRow(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range j.h.n {
			c := &j.comp[i]
			for k, v := range c.coefs {
				if d := int(v) * int(c.quant[k%64]); d < -8192 || d > 8191 {
					return true
				}
			}
		}
	}
	return false
}

// mutatedScan changes a few bits of the entropy-coded data.
func mutatedScan(t *testing.T, rng *rand.Rand, data []byte) []byte {
	at := scanStart(t, data)
	for range 1 + rng.IntN(3) {
		data[at+rng.IntN(len(data)-at)] ^= 1 << rng.IntN(8)
	}
	return data
}

// Without Library, each file goes to the decoder that is faster at it.
func TestDecoderOfEachFile(t *testing.T) {
	d := New(Options{})
	defer d.Close()
	own, lib := 0, 0
	kinds(t, func(name string, data []byte) {
		if !strings.HasSuffix(name, ".jpg") {
			return
		}
		h, err := parseJPEG(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.checkEnd(data); err != nil {
			t.Fatal(err)
		}
		src, err := d.openJPEG(&h, data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch _, turbo := src.(*turboSource); {
		case turbo != (h.severalScans() && !h.incomplete() && !h.arithmetic()):
			t.Errorf("%s: decoded by libjpeg-turbo is %v", name, turbo)
		case turbo:
			lib++
		default:
			own++
		}
	})
	if own == 0 || lib == 0 {
		t.Errorf("%d files for the built-in decoder, %d for libjpeg-turbo: nothing was compared", own, lib)
	}
}
