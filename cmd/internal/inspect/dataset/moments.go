package dataset

import (
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/store"
)

// Moments converts statistics to the form of a manifest. They are 0 if there are no finite numbers.
func Moments(m moments.Moments) store.Moments {
	return store.Moments{Min: m.Min, Max: m.Max, Mean: m.Mean, Std: m.Std(), NonFinite: m.NonFinite}
}
