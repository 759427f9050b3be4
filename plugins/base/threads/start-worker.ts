import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { Worker, type WorkerOptions } from 'node:worker_threads'
import { entryPointPath } from '../../../package.ts'

/**
 * V8 options (from NODE_OPTIONS or the command line) that take precedence over `resourceLimits`: a thread could then
 * use as much memory as the process, or end the process when it runs out. They are reset before a thread starts; the
 * main thread has already read them, and keeps their values.
 */
const heapOptions = ['--max-old-space-size', '--max-heap-size', '--max-semi-space-size']

/**
 * Starts a worker thread with an empty environment, since the environment of the process may contain secrets. Its
 * `resourceLimits` apply whatever heap options the process has. In development and tests, the thread first registers
 * the tsx loader, which threads do not inherit.
 * @param name the path of the worker's main module, for `entryPointPath`
 */
export function startWorker (name: string, options: WorkerOptions): Worker {
  for (const option of heapOptions) setFlagsFromString(`${option}=0`)
  const moduleUrl = pathToFileURL(entryPointPath(name))
  const all = { ...options, env: {} }
  if (!moduleUrl.pathname.endsWith('.ts')) return new Worker(moduleUrl, all)
  const loader = JSON.stringify(import.meta.resolve('tsx/esm/api'))
  const code = `import(${loader}).then(({ register }) => { register(); return ` +
    `import(${JSON.stringify(moduleUrl.href)}) })`
  return new Worker(code, { ...all, eval: true })
}
