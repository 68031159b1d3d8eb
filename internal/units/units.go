// Package units writes numbers, sizes and times for people, and reads sizes that they write.
//
// Sizes are printed in powers of 1024 and say so: 24.0 MiB. [ParseBytes] reads what people type: 64MiB, 64M, 64MB.
// [Counted] writes a number with its noun in the right form, such as "1 record". Programs read --json, which has plain
// numbers, and not these texts.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Count writes n with commas: 19,000.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// Counted writes n and the noun, with an s where that is right.
func Counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Bytes writes n in units of 1024: 24.0 MiB.
func Bytes(n int64) string {
	if n < 1024 {
		return Counted(n, "byte")
	}
	x, unit := float64(n)/1024, 0
	for x >= 1023.95 && unit < len(binaryUnits)-1 {
		x, unit = x/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", x, binaryUnits[unit])
}

const binaryUnits = "KMGTPE"

// Duration writes d with the precision that people care for: 0.42 s, 12.3 s, 2m05s, 1h02m.
func Duration(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 1:
		return fmt.Sprintf("%.2f s", s)
	case s < 60:
		return fmt.Sprintf("%.1f s", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", int(s)/60, int(s)%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(s)/3600, int(s)/60%60)
	}
}

// Rate writes how many of something there were a second.
func Rate(n int64, d time.Duration) string {
	r := float64(n) / max(d.Seconds(), 1e-9)
	if r < 10 {
		return fmt.Sprintf("%.1f/s", r)
	}
	return Count(int64(math.Round(r))) + "/s"
}

// ParseBytes reads a size: 1048576, 64MiB, 64M, 1.5G (powers of 1024), 64MB (powers of
// 1000). Small letters will do.
func ParseBytes(text string) (int64, error) {
	wrong := fmt.Errorf("%q is not a size; write it like 64MiB", text)
	number := strings.TrimRight(strings.ToUpper(text), "KMGTPIB ")
	suffix := strings.TrimSpace(strings.ToUpper(text)[len(number):])
	factor, err := unitFactor(suffix)
	if err != nil {
		return 0, wrong
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(x) || x < 0 {
		return 0, wrong
	}
	if x*factor >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is more than any disk holds", text)
	}
	return int64(x * factor), nil
}

func unitFactor(suffix string) (float64, error) {
	base := 1024.0
	unit := strings.TrimSuffix(suffix, "B")
	if strings.HasSuffix(unit, "I") && len(suffix) == 3 {
		unit = unit[:1]
	} else if len(unit) == 1 && len(suffix) == 2 {
		base = 1000
	}
	power := 0
	if unit != "" {
		power = strings.Index(binaryUnits, unit) + 1
	}
	if len(unit) > 1 || unit != "" && power == 0 {
		return 0, fmt.Errorf("unknown unit %q", suffix)
	}
	return math.Pow(base, float64(power)), nil
}
