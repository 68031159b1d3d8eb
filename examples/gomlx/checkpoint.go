package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/checkpoint"
	"github.com/penstock/penstock/loader"
)

// stateParam is the hyperparameter in which a checkpoint keeps the loader's State: written
// together with the weights, so that the two always belong to the same step.
const stateParam = "penstock_loader_state"

// checkpoints are the checkpoints of a run. A nil *checkpoints saves nothing.
type checkpoints struct {
	store   *model.Store
	handler *checkpoint.Handler
	now     func() loader.State
}

// openCheckpoints loads the last checkpoint of a folder into store, if the folder has a
// checkpoint.
func openCheckpoints(store *model.Store, folder string) (*checkpoints, error) {
	if folder == "" {
		return nil, nil
	}
	if err := dropTorn(folder); err != nil {
		return nil, err
	}
	handler, err := checkpoint.Build(store).Dir(folder).Keep(2).Done()
	return &checkpoints{store: store, handler: handler}, err
}

// dropTorn removes the remains of a run that was killed while it saved: a description without an
// end. It is written after the weights.
func dropTorn(folder string) error {
	names, err := filepath.Glob(filepath.Join(folder, "*"+checkpoint.JsonNameSuffix))
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if json.Valid(data) {
			continue
		}
		weights := strings.TrimSuffix(name, checkpoint.JsonNameSuffix) + checkpoint.BinDataSuffix
		if err := os.Remove(weights); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// of returns the checkpoints of a run whose position now returns.
func (c *checkpoints) of(now func() loader.State) *checkpoints {
	if c != nil {
		c.now = now
	}
	return c
}

// state returns the position of the checkpoint that was loaded, if there was one.
func (c *checkpoints) state() (st loader.State, ok bool, err error) {
	if c == nil {
		return st, false, nil
	}
	value, ok := c.store.GetParam(stateParam)
	if !ok {
		return st, false, nil
	}
	text, isText := value.(string)
	if !isText {
		return st, false, fmt.Errorf("checkpoint: %s is a %T", stateParam, value)
	}
	return st, true, json.Unmarshal([]byte(text), &st)
}

func (c *checkpoints) save() error {
	if c == nil {
		return nil
	}
	text, err := json.Marshal(c.now())
	if err != nil {
		return err
	}
	c.store.SetParam(stateParam, string(text))
	return c.handler.Save()
}
