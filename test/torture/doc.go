// Package torture runs the built program through schedules of troubles that
// nobody has thought of: producers, late producers, readers, kills, pauses
// beyond the lease, clocks that jump, Redis restarts, store errors, topics that
// come and go, and third parties that delete, in any order. In the end all
// troubles stop, and what is left is compared with what producers were told.
//
// A schedule is a list of steps with a text form. It is made from a seed, can
// be printed, read back and run again, and is made shorter when it fails. It
// fixes what is done and in which order; what the processes do meanwhile it
// does not, so a schedule that has failed once may pass the next time.
//
//	go test ./test/torture -schedules 1000 -seed 7
//	go test ./test/torture -schedules 1000 -shards 3
//	go test ./test/torture -schedule 'produce keep:0 5; late keep:0 1 2; kill 0; start 0'
package torture
