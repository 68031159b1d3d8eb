// Package schedule says who makes which batch in which slot, and when: it knows slot numbers, ticks,
// durations and worker counts, but neither records nor bytes. Workers take tasks by [Schedule.Assign] and end
// them by [Schedule.Done]; a loop takes the ticks that are ready by [Loop.Take].
//
// A tick is a batch of a loop. Ticks are counted over the ends of epochs, and without those that a [Position] says
// were delivered before. Ticks are assigned in order, so that all ticks before the next tick have a slot: whatever
// is kept, the tick that the loop waits for gets done.
//
// # States of a slot
//
//	state     is in        its batch belongs to          becomes
//	free      free list    nobody                        filling: Assign or AssignInline gives it a tick
//	filling   window       the worker, or the workers    done: Done
//	                       that have its pieces
//	done      window       the Schedule                  given: Take, or the loop was left
//	given     -            the body of the loop          kept: Keep; free: Free
//	kept      -            the caller of Keep            free: Free
//
// # States of a loop
//
//	state      is                                                becomes
//	opening    one worker prepares the first batch, others wait   split: Divide; open: Open, or the batch is done
//	split      the pieces of the first batch are handed out       open: the last one was
//	open       workers make batches, as there are slots           inline: Look; failed
//	inline     the loop makes its batches itself                  open: Look; failed
//	failed     no tick is assigned any more                       left: Finish
//	left       all that was begun is done, all slots are free     -
//	abandoned  left, but a worker hangs                           left: its last Done
//
// # Invariants
//
//   - A slot is in the free list if it is free, in the window at its tick if it is filling or done, and else in
//     neither.
//   - The ticks in the window are from low on and before next, and next is not beyond end.
//   - A loop counts as under way one piece of work for each slot that is filling, or as many as it has pieces left.
//   - At most Prefetch slots are kept.
//
// With -tags invariants this is checked at every change.
package schedule
