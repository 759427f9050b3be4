import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { Worker, type WorkerOptions } from 'node:worker_threads'
import { entryPath } from '../../../package.ts'

/**
 * V8 options (from NODE_OPTIONS or the command line) that take precedence over `resourceLimits`: with them, a thread
 * could use as much memory as the process, or end the whole process when it runs out. The main thread keeps the values
 * that it has already read.
 */
const heapOptions = ['--max-old-space-size', '--max-heap-size', '--max-semi-space-size']

/**
 * Starts a worker thread. It gets the tsx loader in development and tests, since threads do not inherit it, and an
 * empty environment, since the process's may contain secrets. Its `resourceLimits` apply whatever heap options the
 * process has.
 * @param name the worker's module, a path for `entryPath`
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
