import type { Ready } from '../../../schemas/catalogues.ts'
import { problemOf } from '../../../schemas/problem.ts'
import type { RegistryTransport, ServerJson } from '../../../schemas/server-json.ts'
import { incomplete, ServerConfig } from '../../../schemas/server.ts'
import { fromPackage } from './from-package.ts'
import { Inputs, nameOfEntry, quoteText, Unusable } from './inputs.ts'

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

const types = ['streamable-http', 'sse'] as const

/** The config that connects to a remote. @throws Unusable with the reason why there is none */
export function fromRemote ({ type: given, url, headers = [], variables = {} }: RegistryTransport, inputs: Inputs): ServerConfig {
  const type = types.find((each) => each === given)
  if (!type) throw new Unusable(`the transport ${quoteText(given)} is not known here`)
  if (url === undefined) throw new Unusable('it has no address')
  const address = inputs.fill({ value: url, variables }, 'url', 'url', true) ?? ''
  if (!/^https?:\/\//i.test(address) && !address.startsWith('${')) throw new Unusable(`${quoteText(url)} is not an http or https address`)
  const values: Record<string, string> = {}
  for (const header of headers) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header.name) || header.name === '__proto__') {
      throw new Unusable(`${quoteText(header.name)} cannot be the name of a header`)
    }
    // Variables of the address may stand in headers as well.
    const value = inputs.fill({ ...header, variables: { ...variables, ...header.variables } }, 'header', header.name)
    if (value !== undefined) values[header.name] = value
  }
  return { type, url: address, ...(Object.keys(values).length > 0 && { headers: values }) }
}
