import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { Worker, type WorkerOptions } from 'node:worker_threads'
import { entryPath } from '../../../package.ts'

/**
 * Options of V8 that come before `resourceLimits` where they are set, in NODE_OPTIONS or on the command line: then a
 * thread could take as much memory as the process, or would end the whole process when it has no more. The main thread
 * keeps what it has read of them.
 */
const heapOptions = ['--max-old-space-size', '--max-heap-size', '--max-semi-space-size']

/**
 * Starts a worker thread. Threads do not inherit the loader that runs TypeScript in tests and under `npm run dev`, and
 * get no environment, since it holds secrets. Their `resourceLimits` hold whatever V8 was told for the process.
 * @param name the worker's module, as `entryPath` takes it
 */
export function startWorker (name: string, options: WorkerOptions): Worker {
  for (const option of heapOptions) setFlagsFromString(`${option}=0`)
  const moduleUrl = pathToFileURL(entryPath(name))
  const all = { ...options, env: {} }
  if (!moduleUrl.pathname.endsWith('.ts')) return new Worker(moduleUrl, all)
  const loader = JSON.stringify(import.meta.resolve('tsx/esm/api'))
  const code = `import(${loader}).then(({ register }) => { register(); return ` +
    `import(${JSON.stringify(moduleUrl.href)}) })`
  return new Worker(code, { ...all, eval: true })
}
