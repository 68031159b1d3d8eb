package array

import (
	"strings"
	"testing"
)

func TestTexts(t *testing.T) {
	for _, c := range []struct {
		form      text
		raw, want string
	}{
		{text{size: 3}, "a\x00\x00", "a"},
		{text{size: 3}, "a\x00b", "a\x00b"},
		{text{size: 2, several: true}, "ab\x00\x00", `["ab",""]`},
		{text{size: 1, several: true}, "\xff", "text 0 of a record is no UTF-8"},
		{text{size: 8, wide: true}, "\xf6\x00\x00\x00\x00\x00\x00\x00", "\u00f6"},
		{text{size: 8, wide: true, bigEndian: true}, "\x00\x00\x00\x00\x00\x01\xf6\x42", "\x00\U0001f642"},
		{text{size: 4, wide: true}, "\x00\xd8\x00\x00", "0xd800 is no character"}, // a surrogate
		{text{size: 4, wide: true}, "\xff\xff\xff\xff", "0xffffffff is no character"},
	} {
		got, err := c.form.append(nil, []byte(c.raw))
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.HasPrefix(string(got), c.want) || err == nil && string(got) != c.want {
			t.Errorf("%+v %q: %q, want %q", c.form, c.raw, got, c.want)
		}
	}
}
