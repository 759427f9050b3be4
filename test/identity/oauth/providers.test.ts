// The library's providers, one an issuer: loaded once for all who wait, and again where that failed.
import assert from 'node:assert/strict'
import type { Provider } from 'oidc-provider'
import { test } from 'tap'
import { IssuerProviders } from '../../../plugins/identity/oauth/providers.ts'
import { identityLimits } from '../../../plugins/identity/limits.ts'

test('a provider that could not be loaded is loaded for the next request', async () => {
  let loads = 0
  let isBroken = true
  const providers = new IssuerProviders(async (issuer) => {
    loads++
    await Promise.resolve()
    if (isBroken) throw new Error('no memory for the library')
    return { issuer } as Provider
  })
  const [one, other] = await Promise.allSettled([providers.get('http://a'), providers.get('http://a')])
  assert.deepEqual([one.status, other.status, loads], ['rejected', 'rejected', 1])
  isBroken = false
  const provider = await providers.get('http://a')
  assert.equal(await providers.get('http://a'), provider)
  assert.equal(loads, 2)
  for (let n = 0; n < identityLimits.oauth.issuers; n++) await providers.get(`http://${n}`)
  assert.notEqual(await providers.get('http://a'), provider, 'the oldest is forgotten')
})
