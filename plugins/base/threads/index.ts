export { parsedSizeOf } from './parsed-size.ts'
export { TaskAborted, tooMuchMemory, WorkerPool, workers } from './pool.ts'
