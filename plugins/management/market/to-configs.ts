import type { Ready } from '../../../schemas/catalogues.ts'
import { problemOf } from '../../../schemas/problem.ts'
import { incomplete, ServerConfig } from '../../../schemas/server.ts'
import type { ServerJson } from '../../../schemas/server-json.ts'
import { fromPackage } from './from-package.ts'
import { fromRemote } from './from-remote.ts'
import { Inputs } from './inputs.ts'
import { nameOfEntry } from './names.ts'
import { Unusable } from './unusable.ts'

/**
 * What `POST /api/servers` takes for each package and each remote of an entry, remotes first; or the reason why there is nothing. An
 * entry with neither has one reason for the whole. Each config has a name of its own, so that all of them can be added.
 */
export function toConfigs ({ name: given, packages = [], remotes = [] }: ServerJson): Ready[] {
  const name = nameOfEntry(given)
  const ready = [
    ...remotes.map((remote) => attempt('remote', remote.url, name, (inputs) => fromRemote(remote, inputs))),
    ...packages.map((each) => attempt(each.registryType, each.identifier, name, (inputs) => fromPackage(each, inputs)))
  ]
  return ready.length > 0 ? withNames(ready, name) : [{ from: 'entry', reason: 'it names no package and no remote' }]
}

/** The first config has the name of the entry. Others have their kind behind it, and a number where that is not enough. */
function withNames (ready: readonly Ready[], name: string): Ready[] {
  const taken = new Set<string>()
  return ready.map((each) => {
    if (each.config === undefined) return each
    const { type } = each.config as ServerConfig
    const suffix = each.from !== 'remote' ? each.from : type === 'sse' ? 'sse' : 'http'
    let own = taken.size === 0 ? name : `${name}-${suffix}`
    for (let number = 2; taken.has(own); number++) own = `${name}-${suffix}-${number}`
    taken.add(own)
    return { ...each, name: own }
  })
}

function attempt (from: string, identifier: string | undefined, name: string, make: (inputs: Inputs) => ServerConfig): Ready {
  const inputs = new Inputs(name)
  try {
    const config = make(inputs)
    const wrong = problemOf(ServerConfig, config)
    const problem = wrong ? `"${wrong.path}": ${wrong.message}` : incomplete(config)
    if (problem !== undefined) throw new Unusable(problem)
    return { from, identifier, name, config, required: inputs.required, optional: inputs.optional }
  } catch (error) {
    if (error instanceof Unusable) return { from, identifier, reason: error.message }
    throw error
  }
}
