import type { Ready } from '../../schemas/catalogues.ts'
import { problemOf } from '../../schemas/problem.ts'
import { incomplete, ServerConfig } from '../../schemas/server.ts'
import type { ServerJson } from '../../schemas/server-json.ts'
import { fromPackage } from './from-package.ts'
import { fromRemote } from './from-remote.ts'
import { Inputs } from './inputs.ts'
import { nameOfEntry } from './names.ts'
import { Unusable } from './unusable.ts'

/**
 * What `POST /api/servers` takes for each package and each remote of an entry, remotes first; or the reason why there is nothing. An
 * entry with neither has one reason for the whole.
 */
export function toConfigs ({ name: given, packages = [], remotes = [] }: ServerJson): Ready[] {
  const name = nameOfEntry(given)
  const ready = [
    ...remotes.map((remote) => attempt('remote', remote.url, name, (inputs) => fromRemote(remote, inputs))),
    ...packages.map((each) => attempt(each.registryType, each.identifier, name, (inputs) => fromPackage(each, inputs)))
  ]
  return ready.length > 0 ? ready : [{ from: 'entry', reason: 'it names no package and no remote' }]
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
