#include "token/wordpiece.h"
#include "token/reader.h"
void wordpiece_release(struct wordpiece *u){*u=(struct wordpiece){0};}
void wordpiece_word(const struct wordpiece *p, struct str word, struct ids *out){(void)p;(void)word;(void)out;}
void wordlevel_word(const struct wordpiece *p, struct str word, struct ids *out){(void)p;(void)word;(void)out;}
int reader_json_wordpiece(struct model *m, const struct model_sections *s, struct err *e){(void)m;(void)s;return err_set(e,ERR_PARSE,"has model type \"WordPiece\", which this version does not read");}
int reader_json_wordlevel(struct model *m, const struct model_sections *s, struct err *e){(void)m;(void)s;return err_set(e,ERR_PARSE,"has model type \"WordLevel\", which this version does not read");}
