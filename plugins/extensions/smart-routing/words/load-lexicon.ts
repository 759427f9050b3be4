import { LoopBudget } from '../../../../protocol/yield.ts'
import { readAsset } from '../../../base/config/index.ts'
import { type TradeFile, type LanguageFile, Lexicon } from './lexicon.ts'

const languages = ['de', 'es', 'fr', 'pt', 'it', 'nl', 'pl', 'sv', 'tr', 'ru', 'zh', 'ja', 'ko']

let loading: Promise<Lexicon> | undefined

/** The lexicon of `assets/lexicons/`, which is read once, in steps. @throws if a file is missing or invalid */
export async function loadLexicon (): Promise<Lexicon> {
  loading ??= readAll()
  return await loading
}

async function readAll (): Promise<Lexicon> {
  const lexicon = new Lexicon()
  const budget = new LoopBudget()
  await lexicon.addTrade(JSON.parse(await readAsset('lexicons/trade.json')) as TradeFile, budget)
  for (const language of languages) {
    await lexicon.addLanguage(JSON.parse(await readAsset(`lexicons/${language}.json`)) as LanguageFile, budget)
  }
  return lexicon
}
