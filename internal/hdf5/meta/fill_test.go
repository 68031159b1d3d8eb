package meta

import (
	"fmt"
	"testing"
)

func TestFillValue(t *testing.T) {
	i16 := &Datatype{Class: Fixed, Size: 2, Precision: 16, Signed: true}
	for _, c := range []struct {
		d    Dataset
		want string
	}{
		{Dataset{Type: i16}, "0 true"},
		{Dataset{Type: i16, Fill: Fill{State: FillUser, Value: []byte{0xfe, 0xff}}}, "-2 true"},
		{Dataset{Type: i16, Fill: Fill{State: FillUser, Value: []byte{1}}}, "<nil> false"},
		{Dataset{Type: i16, Fill: Fill{State: FillUndefined}}, "<nil> false"},
		{Dataset{Type: &Datatype{Class: Compound, Size: 4}}, "<nil> false"},
		{Dataset{Type: &Datatype{Class: Vlen, Size: 16}}, "<nil> false"},
		{Dataset{}, "<nil> false"},
	} {
		c.d.file = new(File)
		v, ok := c.d.FillValue()
		if got := fmt.Sprint(v, ok); got != c.want {
			t.Errorf("%+v: %s, want %s", c.d.Fill, got, c.want)
		}
	}
}
