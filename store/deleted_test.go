package store

import (
	"reflect"
	"testing"
)

// The marks of deleted records are read as they were written, and those that cannot be true are refused.
func TestDeletedOfAManifest(t *testing.T) {
	const records = 100
	words := []uint64{1<<3 | 1<<50, 1 << 35}
	d := NewDeleted(words, records)
	if got, err := d.Words(records); err != nil || !reflect.DeepEqual(got, words) || d.Records != 3 {
		t.Fatalf("%x: %v", got, err)
	}
	more, err := d.Extended(records, 300)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := more.Words(300); err != nil || !reflect.DeepEqual(got, append(words, 0, 0, 0)) {
		t.Fatalf("%x: %v", got, err)
	}
	m := Manifest{Records: records, Deleted: d, Splits: []Split{{"a", [][2]int64{{0, 3}, {4, 40}}}, {"b", [][2]int64{{3, 4}, {40, 100}}}}}
	want := []Split{{"a", [][2]int64{{0, 3}, {3, 39}}}, {"b", [][2]int64{{39, 97}}}}
	if got, err := m.LiveSplits(); err != nil || !reflect.DeepEqual(got, want) || m.Live() != 97 {
		t.Errorf("%v, want %v: %v", got, want, err)
	}
	for _, bad := range []*Deleted{
		{Records: 2, Bits: d.Bits}, {Records: 3, Bits: d.Bits[:5]}, {Records: 3}, {Records: 3, Bits: more.Bits}, {Records: 100, Bits: d.Bits},
	} {
		if err := bad.check(records); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	a, _ := d.ID("x", records)
	b, _ := NewDeleted([]uint64{1, 0}, records).ID("x", records)
	if none, _ := (*Deleted)(nil).ID("x", records); a == b || len(a) != 32 || none != "x" {
		t.Errorf("ids %s, %s and %s", a, b, none)
	}
}
