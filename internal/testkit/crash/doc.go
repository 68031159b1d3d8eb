// Package crash shows what a process that is killed, or a machine that loses its power, can
// leave of files. Record runs a program once, under ptrace, and notes every change that it
// makes below a folder and every call that makes changes durable. The Log then has the folder
// as it was between any two of these changes, and as it can be if what was not durable got
// lost; a test writes such states down and has the program continue from each.
//
// A killed process leaves all changes up to some moment. A write can be cut between blocks of
// 4096 bytes. After a power cut
//
//   - a file has what it had when it was synced last; of later writes, block by block, and of
//     later changes of its size and mode, any can be present or not;
//   - names that were made, changed and removed, in whatever folder, are present up to some
//     moment: not before the last change of names in a folder that was synced since. This is
//     what journaling file systems do. A sync of a file does nothing for its name.
//
// Recording needs Linux, and leave to trace one's own processes. It is for tests.
package crash
