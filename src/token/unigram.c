#include "token/unigram.h"
#include "token/reader.h"
void unigram_release(struct unigram *u){*u=(struct unigram){0};}
struct unigram_work *unigram_work_new(void){return NULL;}
void unigram_work_free(struct unigram_work *w){(void)w;}
void unigram_word(const struct unigram *u, struct unigram_work *w, struct str word, struct ids *out){(void)u;(void)w;(void)word;(void)out;}
int reader_json_unigram(struct model *m, const struct model_sections *s, struct err *e){(void)m;(void)s;return err_set(e,ERR_PARSE,"has model type \"Unigram\", which this version does not read");}
