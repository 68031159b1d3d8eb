package change

import "github.com/penstock/penstock/tensor"

// castable reports whether numbers of one type may become numbers of another. The rule is close to
// NumPy's casting "same_kind": an integer stays an integer or becomes a float, and a float stays a
// float. Values are not looked at here: cast checks each value when it is read. float16, bfloat16
// and bool are never converted, in either direction.
func castable(from, to tensor.DType) bool {
	wide := func(d tensor.DType) bool { return d == tensor.Float32 || d == tensor.Float64 }
	integer := func(d tensor.DType) bool { return d != tensor.Bool && !d.IsFloat() }
	switch {
	case integer(from):
		return integer(to) || wide(to)
	case wide(from):
		return wide(to)
	}
	return false
}

// cast converts the numbers in value from one type to another, for which castable holds. Integers
// must fit exactly, also into a float, because a rounded id or class number would be another id or
// class. Floats are rounded to the nearest float of the new type. The error names the first number
// that does not fit.
func cast(value []byte, from, to tensor.DType) (out []byte, err error) {
	put := tensor.DType.AppendExact
	if from.IsFloat() {
		put = tensor.DType.AppendNearest
	}
	for ; len(value) > 0 && err == nil; value = value[from.Size():] {
		out, err = put(to, out, from.Read(value))
	}
	return out, err
}
