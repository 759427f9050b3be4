import { Worker, type WorkerOptions } from 'node:worker_threads'

/**
 * Starts a worker thread. Threads do not inherit the loader that runs TypeScript in tests and under `npm run dev`, and get no environment,
 * since it holds secrets.
 * @param name the worker's module, without its extension, relative to the caller
 * @param caller `import.meta.url` of the caller: the worker's module is TypeScript where the caller is
 */
export function startWorker (name: string, caller: string, options: WorkerOptions): Worker {
  const moduleUrl = new URL(`${name}${caller.slice(caller.lastIndexOf('.'))}`, caller)
  const all = { ...options, env: {} }
  if (!moduleUrl.pathname.endsWith('.ts')) return new Worker(moduleUrl, all)
  const loader = JSON.stringify(import.meta.resolve('tsx/esm/api'))
  const code = `import(${loader}).then(({ register }) => { register(); return import(${JSON.stringify(moduleUrl.href)}) })`
  return new Worker(code, { ...all, eval: true })
}
