package tfrecord

import (
	"encoding/binary"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/rows"
	"github.com/penstock/penstock/tensor"
)

// A record is a tf.train.Example or a tf.train.SequenceExample (tensorflow/core/example/example.proto, feature.proto):
//
//	Example         { Features features = 1; }
//	SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
//	Features        { map<string, Feature> feature = 1; }
//	FeatureLists    { map<string, FeatureList> feature_list = 1; }
//	FeatureList     { repeated Feature feature = 1; }
//	Feature         { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }, each with repeated value = 1
//
// A map is repeated messages of key = 1 and value = 2.

var errWire = source.ValueError("not a tf.train.Example, or corrupt")

// message is the unread rest of a protobuf message. https://protobuf.dev/programming-guides/encoding
type message []byte

// Wire types of protobuf.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

// field is one field of a message.
type field struct {
	number, wire uint64
	data         []byte // of wireBytes, wireFixed8 and wireFixed4
	n            uint64 // of wireVarint
}

// next removes the next field from the message and returns it.
func (m *message) next() (f field, err error) {
	tag, err := m.varint()
	if err != nil {
		return f, err
	}
	f.number, f.wire = tag>>3, tag&7
	size := uint64(0)
	switch f.wire {
	case wireVarint:
		f.n, err = m.varint()
		return f, err
	case wireFixed8:
		size = 8
	case wireFixed4:
		size = 4
	case wireBytes:
		if size, err = m.varint(); err != nil {
			return f, err
		}
	default: // groups are not written since 2008
		return f, errWire
	}
	if size > uint64(len(*m)) || f.number == 0 {
		return f, errWire
	}
	f.data, *m = (*m)[:size], (*m)[size:]
	return f, nil
}

func (m *message) varint() (uint64, error) {
	n, size := binary.Uvarint(*m)
	if size <= 0 {
		return 0, errWire
	}
	*m = (*m)[size:]
	return n, nil
}

// each calls take with each submessage in the field with that number.
func (m message) each(number uint64, take func(message) error) error {
	for len(m) > 0 {
		f, err := m.next()
		if err != nil {
			return err
		}
		if f.number == number && f.wire == wireBytes {
			if err := take(f.data); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry returns key and value of a map entry. A later value replaces an earlier value, as in any protobuf parser.
func (m message) entry() (key []byte, value message, err error) {
	for len(m) > 0 {
		f, err := m.next()
		if err != nil {
			return nil, nil, err
		}
		switch {
		case f.number == 1 && f.wire == wireBytes:
			key = f.data
		case f.number == 2 && f.wire == wireBytes:
			value = f.data
		}
	}
	return key, value, nil
}

// record is the bytes of an Example or SequenceExample as a rows.Row. Both have the features in field 1; only the
// latter has field 2.
type record []byte

// Each implements rows.Row.
func (r record) Each(buf *[]byte, v rows.Visitor) error {
	visit := func(value func(e *values, m message) error) func(message) error {
		return func(entry message) error {
			key, m, err := entry.entry()
			if err != nil {
				return err
			}
			column := v.Column(key)
			if column < 0 {
				return nil
			}
			e := values{buf: buf, begin: len(*buf)}
			if err := value(&e, m); err != nil {
				return err
			}
			x := e.value()
			return v.Value(column, &x)
		}
	}
	features, lists := visit((*values).feature), visit((*values).featureList)
	m := message(r)
	if err := m.each(1, func(m message) error { return m.each(1, features) }); err != nil {
		return err
	}
	return m.each(2, func(m message) error { return m.each(1, lists) })
}

// Field numbers of the lists in a Feature.
const bytesKind, floatKind, intKind = 1, 2, 3

// values collects the values of a Feature, or of all features in a FeatureList.
type values struct {
	buf   *[]byte // numbers are appended to it
	begin int     // length of *buf before the values
	kind  uint64  // one of the kinds; 0 if there was no list yet
	count int
	one   []byte   // the first byte string, so that a single one needs no slice
	items [][]byte // all byte strings, if there are several

	list   bool // the values are of a FeatureList
	steps  int  // number of features in the list
	row    int  // number of values in the first of these features
	ragged bool // the features have different numbers of values
}

// featureList adds a list of features, which becomes a value of two axes.
func (e *values) featureList(m message) error {
	e.list = true
	return m.each(1, func(m message) error {
		before, kind := e.count, e.kind
		if err := e.feature(m); err != nil {
			return err
		}
		if e.steps++; e.steps == 1 {
			e.row = e.count - before
		}
		if kind != 0 && kind != e.kind {
			return source.ValueError("a list of features of several types")
		}
		e.ragged = e.ragged || e.count-before != e.row
		return nil
	})
}

// feature adds a Feature. Its lists are a oneof, of which the last list counts.
func (e *values) feature(m message) error {
	for len(m) > 0 {
		f, err := m.next()
		if err != nil {
			return err
		}
		if f.wire != wireBytes || f.number < bytesKind || f.number > intKind {
			continue
		}
		// By the rules of protobuf, a later member of a oneof replaces the earlier member. In a list, each feature
		// is a value.
		if e.kind != f.number && !e.list { // the last one of a oneof counts
			e.kind, e.count, e.one, e.items, *e.buf = 0, 0, nil, nil, (*e.buf)[:e.begin]
		}
		if e.kind != 0 && e.kind != f.number {
			return source.ValueError("a list of features of several types")
		}
		e.kind = f.number
		if err := e.values(f.data); err != nil {
			return err
		}
	}
	return nil
}

// values adds a BytesList, FloatList or Int64List. Numbers may be packed into one field or not: both forms are
// written.
func (e *values) values(m message) error {
	for len(m) > 0 {
		f, err := m.next()
		if err != nil {
			return err
		}
		if f.number != 1 {
			continue
		}
		switch {
		case e.kind == bytesKind && f.wire == wireBytes:
			if e.count++; e.count == 1 {
				e.one = f.data
			} else {
				if e.count == 2 {
					e.items = append(e.items, e.one)
				}
				e.items = append(e.items, f.data)
			}
		case e.kind == floatKind && (f.wire == wireFixed4 || f.wire == wireBytes && len(f.data)%4 == 0):
			*e.buf = append(*e.buf, f.data...)
			e.count += len(f.data) / 4
		case e.kind == intKind && f.wire == wireVarint:
			*e.buf = binary.LittleEndian.AppendUint64(*e.buf, f.n)
			e.count++
		case e.kind == intKind && f.wire == wireBytes:
			for packed := message(f.data); len(packed) > 0; e.count++ {
				n, err := packed.varint()
				if err != nil {
					return err
				}
				*e.buf = binary.LittleEndian.AppendUint64(*e.buf, n)
			}
		default:
			return errWire
		}
	}
	return nil
}

// value returns the collected values. An empty Feature is a null.
func (e *values) value() (x rows.Value) {
	switch e.kind {
	case 0:
		x.Null = true
		return x
	case bytesKind:
		x.Data = e.one
		// A single byte string outside of a list is a value, not a list of one value.
		if x.List = e.count != 1 || e.list; x.List {
			x.Data, x.Items = nil, e.items
			if e.count == 1 {
				x.Items = [][]byte{e.one}
			}
		}
		return x
	case floatKind:
		x.DType = tensor.Float32
	case intKind:
		x.DType = tensor.Int64
	}
	x.Data = (*e.buf)[e.begin:]
	switch {
	case e.ragged:
		x.SetShape(e.steps, rows.Varies)
	case e.list && e.row != 1:
		x.SetShape(e.steps, e.row)
	default:
		x.SetShape(e.count)
	}
	return x
}
