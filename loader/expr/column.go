package expr

// kind is the type of values in an expression.
type kind int

const (
	truthKind    kind = iota
	integerKind       // int64
	unsignedKind      // uint64
	floatKind         // float64
	textKind
)

// value is the value of a literal.
type value struct {
	kind  kind
	bits  uint64 // of integerKind and unsignedKind
	float float64
	text  string
	truth bool
}

// number returns the value as float64; true is 1.
func (v value) number() float64 {
	switch v.kind {
	case integerKind:
		return float64(int64(v.bits))
	case unsignedKind:
		return float64(v.bits)
	case truthKind:
		return truthOf[float64](v.truth)
	}
	return v.float
}

// column holds the values of a block's records, which all have one kind.
type column struct {
	one      bool    // the column has one value, which all records share
	integers []int64 // of unsignedKind, the bits
	floats   []float64
	truths   []bool
	texts    texts
	offsets  []int64 // of lists: record i has the values [offsets[i], offsets[i+1])
}

// texts are concatenated strings: string i is data[offsets[i]:offsets[i+1]]. A block's strings are
// two slices, and not a slice of strings that the garbage collector would scan.
type texts struct {
	data    []byte
	offsets []int64
}

func (t texts) at(i int) []byte { return t.data[t.offsets[i]:t.offsets[i+1]] }

// step is the distance from the value of one record to the value of the next: 0 if all records share one value.
func (c *column) step() int {
	if c.one {
		return 0
	}
	return 1
}

// literalColumn returns a column with the value of a literal.
func literalColumn(v value) column {
	c := column{one: true}
	switch v.kind {
	case truthKind:
		c.truths = []bool{v.truth}
	case integerKind, unsignedKind:
		c.integers = []int64{int64(v.bits)}
	case floatKind:
		c.floats = []float64{v.float}
	case textKind:
		c.texts = texts{[]byte(v.text), []int64{0, int64(len(v.text))}}
	}
	return c
}
