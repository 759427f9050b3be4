import { createServer, type ServerResponse } from 'node:http'
import { until, type Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'

/** Gates for fakes in other processes: a request for the address of a gate is answered once the gate is open. */
export interface Gates {
  /** The address of the gate of this name, which is closed at first. */
  at: (name: string) => string
  /** Waits until somebody waits at it. */
  reached: (name: string) => Promise<void>
  /** Opens it for those who wait at it, and for all who come later. */
  open: (name: string) => void
  /** The address of a new gate, which opens by itself once so many wait at it. */
  meeting: (count: number) => string
}

/** Serves gates on loopback. At the end of the test all of them open. */
export async function startGates (t: Cleanup): Promise<Gates> {
  const waiting = new Map<string, ServerResponse[]>()
  const opened = new Set<string>()
  const counts = new Map<string, number>()
  const open = (name: string): void => {
    opened.add(name)
    for (const response of waiting.get(name) ?? []) response.end()
  }
  const server = createServer((request, response) => {
    const name = request.url?.slice(1) ?? ''
    if (opened.has(name)) { response.end(); return }
    const here = [...waiting.get(name) ?? [], response]
    waiting.set(name, here)
    if (here.length === counts.get(name)) open(name)
  })
  const port = await listen(t, server)
  const at = (name: string): string => `http://127.0.0.1:${port}/${name}`
  return {
    at,
    reached: async (name) => { await until(() => waiting.has(name), `nobody waits at the gate ${name}`) },
    open,
    meeting: (count) => {
      const name = `meeting-${counts.size}`
      counts.set(name, count)
      return at(name)
    }
  }
}
