export { TaskStopped, workers } from './pool.ts'
export { startWorker } from './start-worker.ts'
