import { readdirSync, readFileSync } from 'node:fs'

const read = (file: string): string => { try { return readFileSync(file, 'latin1') } catch { return '' } }

function parentOf (pid: number): number {
  const stat = read(`/proc/${pid}/stat`)
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

const isLauncher = (pid: number): boolean => read(`/proc/${pid}/cmdline`).includes('/upstream/launcher/main')

const below = (...parents: number[]): number[] =>
  readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => parents.includes(parentOf(pid)))

/** The launcher of a gateway, if it has started one. */
export const launchersOf = (gateway: number): number[] => below(gateway).filter(isLauncher)

/** The processes that a gateway started for its servers: by its launcher, or itself. */
export const childrenOf = (gateway: number): number[] => below(gateway, ...launchersOf(gateway)).filter((pid) => !isLauncher(pid))
