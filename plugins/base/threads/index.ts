export { TaskStopped, WorkerPool, workers } from './pool.ts'
