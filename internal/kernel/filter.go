package kernel

import (
	"fmt"
	"math"
	"strings"
)

// Filter is a resampling filter, with Pillow's definition of each.
type Filter uint8

// The filters that Pillow has. All but Nearest widen with the scale when they reduce, which is also
// called antialiasing.
const (
	Nearest Filter = iota
	Box
	Bilinear
	Hamming
	Bicubic // a = -0.5
	Lanczos // 3 lobes
)

var filters = [...]struct {
	name    string
	support float64 // half width in input pixels at scale 1
	at      func(x float64) float64
}{
	Nearest:  {"nearest", 0, nil},
	Box:      {"box", 0.5, boxAt},
	Bilinear: {"bilinear", 1, bilinearAt},
	Hamming:  {"hamming", 1, hammingAt},
	Bicubic:  {"bicubic", 2, bicubicAt},
	Lanczos:  {"lanczos", 3, lanczosAt},
}

// Filters returns the names that ParseFilter knows.
func Filters() []string {
	names := make([]string, len(filters))
	for i, f := range filters {
		names[i] = f.name
	}
	return names
}

// ParseFilter returns the filter of that name.
func ParseFilter(name string) (Filter, error) {
	for i, f := range filters {
		if f.name == name {
			return Filter(i), nil
		}
	}
	return 0, fmt.Errorf("unknown filter %q; known are %s", name, strings.Join(Filters(), ", "))
}

// String returns the name that ParseFilter reads.
func (f Filter) String() string {
	if int(f) >= len(filters) {
		return "invalid"
	}
	return filters[f].name
}

// The functions below follow Pillow's src/libImaging/Resample.c operation by operation, as
// another order would round otherwise.

func boxAt(x float64) float64 {
	if x > -0.5 && x <= 0.5 {
		return 1
	}
	return 0
}

func bilinearAt(x float64) float64 {
	if x = math.Abs(x); x < 1 {
		return 1 - x
	}
	return 0
}

func hammingAt(x float64) float64 {
	x = math.Abs(x)
	if x == 0 {
		return 1
	}
	if x >= 1 {
		return 0
	}
	x = float64(x * math.Pi)
	const a, b = float32(0.54), float32(0.46) // single precision in Pillow too
	return float64(math.Sin(x)/x) * (float64(a) + float64(float64(b)*math.Cos(x)))
}

func bicubicAt(x float64) float64 {
	const a = -0.5
	x = math.Abs(x)
	if x < 1 {
		return float64(float64((float64((a+2)*x)-(a+3))*x)*x) + 1
	}
	if x < 2 {
		return float64((float64((float64((x-5)*x)+8)*x) - 4) * a)
	}
	return 0
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	x = float64(x * math.Pi)
	return math.Sin(x) / x
}

func lanczosAt(x float64) float64 {
	if x >= -3 && x < 3 {
		return float64(sinc(x) * sinc(x/3))
	}
	return 0
}
