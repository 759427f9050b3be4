// What the worker pool runs for `fitInWorker`.
export { fitArguments as run } from './fit.ts'
