export { TaskAborted, WorkerPool, workers } from './pool.ts'
