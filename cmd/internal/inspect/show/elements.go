package show

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/tensor"
)

// elements writes the first most elements of v, each with as many digits as distinguish it from its
// neighbors; most 0 means all.
func elements(v tensor.View, most int) []string {
	switch v.DType() {
	case tensor.Bool:
		return textOf(v.Bytes(), most, func(x uint8) string { return strconv.FormatBool(x != 0) })
	case tensor.Uint64:
		return textOf(tensor.As[uint64](v), most, func(x uint64) string { return strconv.FormatUint(x, 10) })
	case tensor.Float16:
		return textOf(tensor.As[tensor.Half](v), most, func(x tensor.Half) string {
			return floatText(float64(x.Float32()), 32)
		})
	case tensor.BFloat16:
		return textOf(tensor.As[tensor.Brain](v), most, func(x tensor.Brain) string {
			return floatText(float64(x.Float32()), 32)
		})
	case tensor.Float32:
		return textOf(tensor.As[float32](v), most, func(x float32) string { return floatText(float64(x), 32) })
	case tensor.Float64:
		return textOf(tensor.As[float64](v), most, func(x float64) string { return floatText(x, 64) })
	case tensor.Uint8:
		return textOf(v.Bytes(), most, whole)
	case tensor.Int8:
		return textOf(tensor.As[int8](v), most, whole)
	case tensor.Uint16:
		return textOf(tensor.As[uint16](v), most, whole)
	case tensor.Int16:
		return textOf(tensor.As[int16](v), most, whole)
	case tensor.Uint32:
		return textOf(tensor.As[uint32](v), most, whole)
	case tensor.Int32:
		return textOf(tensor.As[int32](v), most, whole)
	}
	return textOf(tensor.As[int64](v), most, whole)
}

func textOf[T any](x []T, most int, f func(T) string) []string {
	if most > 0 && len(x) > most {
		x = x[:most]
	}
	return dataset.Map(x, f)
}

func whole[T uint8 | int8 | uint16 | int16 | uint32 | int32 | int64](x T) string {
	return strconv.FormatInt(int64(x), 10)
}

func floatText(x float64, bits int) string { return strconv.FormatFloat(x, 'g', -1, bits) }

// numbers turns the output of elements into JSON; a value that is not a JSON number becomes a string.
func numbers(texts []string) []json.RawMessage {
	return dataset.Map(texts, func(s string) json.RawMessage {
		if x, err := strconv.ParseFloat(s, 64); err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return json.RawMessage(strconv.Quote(s))
		}
		return json.RawMessage(s)
	})
}
