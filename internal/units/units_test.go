package units

import (
	"math"
	"testing"
	"time"
)

func TestUnits(t *testing.T) {
	cases := []struct{ got, want string }{
		{Count(0), "0"}, {Count(999), "999"}, {Count(1000), "1,000"}, {Count(-1234567), "-1,234,567"},
		{Counted(1, "record"), "1 record"}, {Counted(19000, "record"), "19,000 records"},
		{Bytes(0), "0 bytes"}, {Bytes(1), "1 byte"}, {Bytes(1023), "1,023 bytes"}, {Bytes(1024), "1.0 KiB"},
		{Bytes(25138176), "24.0 MiB"}, {Bytes(1<<30 - 1), "1.0 GiB"}, {Bytes(math.MaxInt64), "8.0 EiB"},
		{Duration(420 * time.Millisecond), "0.42 s"}, {Duration(12340 * time.Millisecond), "12.3 s"},
		{Duration(125 * time.Second), "2m05s"}, {Duration(3720 * time.Second), "1h02m"},
		{Rate(3, 2*time.Second), "1.5/s"}, {Rate(19000, 2*time.Second), "9,500/s"}, {Rate(0, 0), "0.0/s"},
	}
	for _, c := range cases {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	good := map[string]int64{
		"0": 0, "17": 17, "17B": 17, "64MiB": 64 << 20, "64mib": 64 << 20, "64M": 64 << 20, "64 MiB": 64 << 20,
		"64MB": 64e6, "1.5G": 3 << 29, "2TiB": 2 << 40, "1kb": 1000,
	}
	for text, want := range good {
		if n, err := ParseBytes(text); err != nil || n != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "M", "-1", "1X", "1MM", "1iB", "1BB", "nan", "inf", "1e30", "9EiB", "x64", "1 2"} {
		if n, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, n)
		}
	}
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"64MiB", "1.5G", "x", "0x1p3K", "99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := ParseBytes(text); err == nil && n < 0 {
			t.Errorf("ParseBytes(%q) = %d", text, n)
		}
	})
}
